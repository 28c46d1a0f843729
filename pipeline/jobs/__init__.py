"""The questions that can be asked of an audit log; each module has ``run(inputs, options)``."""
