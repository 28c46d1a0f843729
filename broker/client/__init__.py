"""A client of any Kafka-compatible broker, for the conformance suite and the command line.

`blocking` sends requests on one connection. `command_config` reads from a Kafka client's properties
file how a user reaches the broker and logs in.
"""
