"""The store for a fleet: one compacted topic of a Kafka, which every broker reads and writes."""
