"""How the pipeline runs on Spark, whatever it computes."""
