"""From the names that peers prove to principals, by Kafka's mapping rules."""
