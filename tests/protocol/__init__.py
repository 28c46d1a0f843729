"""Tests of protocol/: property tests against independent codecs, and each rule by an example."""
