"""A client of any Kafka-compatible cluster, for the conformance suite and the command line.

`blocking` sends requests on one connection. `settings` reads a Kafka client's properties file,
which says how a user reaches the cluster; `session` connects by them, `sasl` logs in, and `acls`
asks. What goes wrong has the words of `errors`.
"""
