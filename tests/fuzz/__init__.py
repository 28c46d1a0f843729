"""Fuzzing: bytes that no client sends, against the codec and against a running broker."""
