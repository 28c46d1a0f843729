"""The command `aclbroker acls`: kafka-acls.sh of Kafka 4.3.0, without a JVM.

`options` has its options and reads them as Kafka's parser does, `checks` what does not go together,
`wanted` what they ask for, `texts` how that is printed, and `command` does it at one of the
`targets`: a cluster, or the nodes in ZooKeeper (`zookeeper`).
"""
