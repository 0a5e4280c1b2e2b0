"""The default library `execute_python`."""
