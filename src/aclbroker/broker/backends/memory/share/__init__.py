"""Share groups (KIP-932), of a cluster in memory: members, records, and how far groups are."""
