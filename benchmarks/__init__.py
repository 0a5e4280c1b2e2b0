"""Side-by-side measurements: ours and, where they are installed, the peers', in one run. Ratios count, absolute times do not."""
