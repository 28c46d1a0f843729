"""The store in ZooKeeper, laid out as Kafka's AclAuthorizer does it: the extra ``zookeeper``."""
