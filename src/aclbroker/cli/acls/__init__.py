"""The command `aclbroker acls`: kafka-acls.sh of Kafka 4.3.0, without a JVM.

`options` has the options and reads them as Kafka's parser does, and `checks` refuses options that
exclude each other. `wanted` makes ACLs and filters of options, and `texts` makes lines of ACLs.
`command` runs an action at one of the `targets`: a cluster, or nodes in ZooKeeper (`zookeeper`).
"""
