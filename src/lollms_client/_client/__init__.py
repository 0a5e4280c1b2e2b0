"""What `LollmsClient` is made of: its modalities, and the calls that it hands on."""
