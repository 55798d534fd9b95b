"""What a caller may do: keys, limits, windows, prompts, privacy. Pure but for the keyring."""
