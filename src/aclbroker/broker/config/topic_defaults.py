"""The defaults for the settings of topics that the broker's own settings change."""

from aclbroker.broker.config.reader import Reader
from aclbroker.broker.config.topic_definitions import TIMES
from aclbroker.broker.topic_configs import TOPIC_CONFIGS, BrokerDefault


def topic_defaults(reader: Reader) -> dict[str, BrokerDefault]:
    """Return the settings of topics whose default the broker's own settings change, by name."""
    defaults = {
        name: BrokerDefault(reader.value(setting.broker_name), setting.broker_name)
        for name, setting in TOPIC_CONFIGS.items()
        if setting.broker_name and reader.given(setting.broker_name)
    }
    for name, settings in TIMES.items():
        given = next((setting for setting in settings if reader.given(setting)), None)
        if given is not None:
            value = reader.value(given)
            unit_ms = settings[given]
            milliseconds = value if value < 0 else value * unit_ms
            defaults[name] = BrokerDefault(str(milliseconds), given if unit_ms == 1 else "")
    return defaults
