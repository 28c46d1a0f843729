"""A client of any Kafka-compatible broker, for the conformance suite and the command line.

`blocking` speaks the protocol on one connection, and `command_config` says from a Kafka client's
properties file where to connect and as whom.
"""
