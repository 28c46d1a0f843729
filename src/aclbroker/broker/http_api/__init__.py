"""The HTTP API for centralised ACLs, as Confluent's Metadata Service (MDS) has it."""
