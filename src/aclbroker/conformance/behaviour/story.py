"""What a story is, and who tells it: requests one after the other, and what is answered to each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from aclbroker.broker.client.blocking import BlockingClient, NoAnswer
from aclbroker.conformance.behaviour.shown import Names, shown
from aclbroker.conformance.outline import (
    ANSWERED,
    CLOSED,
    NO_ANSWER,
    Outline,
    without_answer,
)
from aclbroker.conformance.recording import Step
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.schema import versions_in

_OF_CLIENTS: Final[Mapping[ApiKey, str]] = {
    ApiKey.PRODUCE: "3+",
    ApiKey.FETCH: "4+",
    ApiKey.LIST_OFFSETS: "1+",
    ApiKey.OFFSET_COMMIT: "2+",
    ApiKey.OFFSET_FETCH: "1+",
    ApiKey.CREATE_TOPICS: "2+",
    ApiKey.DELETE_TOPICS: "1+",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "2+",
    ApiKey.DESCRIBE_CONFIGS: "1+",
    ApiKey.DESCRIBE_LOG_DIRS: "1+",
    ApiKey.ADD_PARTITIONS_TO_TXN: "0-3",
}
"""The versions that clients of Kafka 4 use, where a broker may offer others, too (KIP-896)."""

_MOST_POLLS: Final = 3_000


class StoryEnded(Exception):
    """The broker did not answer what all the rest of a story follows from."""


class TopicWanted(NamedTuple):
    """A topic that a story needs."""

    partitions: int = 1
    configs: Mapping[str, str] = {}
    is_plain: bool = False
    """Whether it has no settings but these. Else no record is too old for it, as by Kafka's default
    of a week those are that stories write: any look at the log could remove them midway.
    """

    @property
    def settings(self) -> Mapping[str, str]:
        """What it is created with."""
        return self.configs if self.is_plain else {"retention.ms": "-1", **self.configs}


class Story(NamedTuple):
    """A dialogue with a broker."""

    play: Callable[[Teller], None]
    topics: Mapping[str, TopicWanted] = {}
    newest_only: bool = False
    """Whether the story names the versions itself, so that it is told once."""
    on_cluster: bool = False
    """Whether some of it needs rights on the cluster."""

    @property
    def name(self) -> str:
        """What the story is called in recordings and reports."""
        return self.play.__name__.replace("_", " ")


class Scene(NamedTuple):
    """Where a story is told: the broker's versions, and how to reach it in a role."""

    offered: Mapping[ApiKey, range]
    oldest: bool
    """Whether requests are sent at the lowest version that the broker offers, not the highest."""
    role: str
    connect: Callable[[], BlockingClient]
    """Opens a connection of the user who tells the story."""
    admin: BlockingClient
    """A connection of the super user."""
    settle: Callable[[], None]
    """Waits until what was changed is in force."""


class Teller:
    """Sends a story's requests to a broker, and keeps the answers.

    Topics, groups and transactional ids of a story have names of their own (`name`). `ids` has the
    ids of its topics.
    """

    def __init__(self, scene: Scene, story: Story, prefix: str, ids: Mapping[str, bytes]) -> None:
        self.answers: dict[Step, Outline] = {}
        self.ids = ids
        self.settle = scene.settle
        self._scene = scene
        self._story = story
        self._prefix = prefix
        self._names = Names(prefix)
        for name, identifier in ids.items():
            self._names.call(identifier, f"id of {name}")
        self._opened: list[BlockingClient] = []
        self._user: BlockingClient | None = None
        self._steps = 0

    @property
    def group_id(self) -> str:
        """The story's group."""
        return self.name("group")

    @property
    def is_oldest(self) -> bool:
        """Whether requests are sent at their lowest versions."""
        return self._scene.oldest

    def name(self, short: str) -> str:
        """Return the name of a topic, a group or a transactional id of this story."""
        return self._prefix + short

    def call(self, value: Any, name: str) -> Any:
        """Show a value that is different each time by a name; returns the value."""
        self._names.call(value, name)
        return value

    def client(self) -> BlockingClient:
        """Return a further connection."""
        self._opened.append(self._scene.connect())
        return self._opened[-1]

    def admin(self, key: ApiKey, message: Any, version: int | None = None) -> Any:
        """Return what the super user is answered, which is not part of the story."""
        return self._scene.admin.ask(key, self._version(key, version), message)

    def versions(self, key: ApiKey, within: str = "0+") -> list[int]:
        """Return the versions of a key that the broker and this program know, in order."""
        wanted, clients = versions_in(within), versions_in(_OF_CLIENTS.get(key, "0+"))
        offered = self._scene.offered.get(key, range(0))
        return [v for v in APIS[key].versions if v in offered and v in wanted and v in clients]

    def _version(self, key: ApiKey, version: int | None) -> int:
        found = self.versions(key) if version is None else [version]
        if not found or (version is not None and version not in self._scene.offered.get(key, ())):
            raise StoryEnded
        return found[0] if self._scene.oldest else found[-1]

    def ask(self, key: ApiKey, message: Any, about: str = "", version: int | None = None) -> Any:
        """Send a request; keep and return what is answered.

        Without a version it is the highest or lowest one, as the scene says. Raises `StoryEnded` if
        it is not answered.
        """
        step = self._step(key, self._version(key, version), about)
        try:
            answer = self._current().ask(key, step.version, message)
        except (NoAnswer, OSError) as error:
            self._fail(step, error)
            raise StoryEnded from error
        return self._keep(step, answer)

    def ask_each(self, key: ApiKey, message: Any, about: str = "", within: str = "0+") -> None:
        """Send a request that changes nothing at each version.

        It is sent once, if the story is told at the lowest versions, too.
        """
        versions = self.versions(key, within)
        self._steps += 1
        if self._scene.oldest:
            return
        for version in versions:
            step = self._step(key, version, about, again=True)
            try:
                self._keep(step, self._current().ask(key, version, message))
            except (NoAnswer, OSError) as error:
                self._fail(step, error)

    def send(self, key: ApiKey, message: Any, about: str = "") -> None:
        """Send a request without an answer; keep whether the connection stays open."""
        step = self._step(key, self._version(key, None), about)
        try:
            self._current().request(key, step.version, message)
            self._current().ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
            self.answers[step] = without_answer(NO_ANSWER)
        except (NoAnswer, OSError) as error:
            self._fail(step, error)

    def later(
        self, key: ApiKey, message: Any, about: str = "", version: int | None = None
    ) -> Callable[[], Any]:
        """Send a request; returns a function that waits for the answer, and keeps it."""
        step = self._step(key, self._version(key, version), about)
        client = self.client()
        client.request(key, step.version, message)
        return lambda: self._keep(step, client.response(key, step.version)[1])

    def quietly(self, key: ApiKey, message: Any, version: int | None = None) -> Any:
        """Send a request whose answer is not part of the story."""
        return self._current().ask(key, self._version(key, version), message)

    def keep(self, key: ApiKey, answer: Any, about: str = "", version: int | None = None) -> None:
        """Keep what was answered quietly."""
        self._keep(self._step(key, self._version(key, version), about), answer)

    def until(
        self,
        is_so: Callable[[Any], bool],
        key: ApiKey,
        message: Any,
        version: int | None = None,
    ) -> None:
        """Ask as the super user until the answer is as it should be."""
        for _ in range(_MOST_POLLS):
            if is_so(self.admin(key, message, version)):
                return
        raise StoryEnded

    def close(self) -> None:
        """Close all connections."""
        for client in self._opened:
            client.close()

    def _current(self) -> BlockingClient:
        if self._user is None:
            self._user = self.client()
        return self._user

    def _step(self, key: ApiKey, version: int, about: str, *, again: bool = False) -> Step:
        self._steps += not again
        told = f" {about}" if about else ""
        label = f"{self._story.name}: {self._steps:02}{told}"
        return Step(key, label, version, self._scene.role)

    def _fail(self, step: Step, error: OSError) -> None:
        outcome = NO_ANSWER if isinstance(error, NoAnswer) else CLOSED
        self.answers[step] = without_answer(outcome)
        self._user = None

    def _keep(self, step: Step, answer: Any) -> Any:
        fields, messages = shown(step.key, step.version, answer, self._names)
        self.answers[step] = Outline(ANSWERED, {}, {}, {}, fields, messages, [])
        return answer


def told(teller: Teller, story: Story) -> Mapping[Step, Outline]:
    """Tell a story; returns what was answered, as far as it went."""
    try:
        story.play(teller)
    except StoryEnded:
        pass
    finally:
        teller.close()
    return teller.answers
