"""Fuzzing: bytes that no client sends, and requests that no kind client sends."""
