"""The conformance suite as a tool: what it records, how it compares, what it says."""
