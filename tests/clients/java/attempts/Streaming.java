import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/** What Kafka Streams applications attempt: to read a topic. */
final class Streaming {
    static final Map<String, Attempts.Attempt> ATTEMPTS = Map.of(
        "stream", (session, resources) -> stream(session, "classic", resources),
        "stream-by-heartbeat", (session, resources) -> stream(session, "streams", resources));

    private Streaming() {
    }

    private static String stream(Session session, String protocol, List<String> resources)
            throws Exception {
        StreamsBuilder topology = new StreamsBuilder();
        topology.stream(resources.get(0)).foreach((key, value) -> { });
        KafkaStreams streams = new KafkaStreams(
            topology.build(),
            session.config("application.id", resources.get(1), "group.protocol", protocol));
        CompletableFuture<String> outcome = new CompletableFuture<>();
        streams.setUncaughtExceptionHandler(error -> {
            outcome.completeExceptionally(error);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                outcome.complete(Session.DONE);
            }
        });
        try {
            streams.start();
            return outcome.get(session.patience.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            return Session.NOTHING;
        } finally {
            streams.close(Duration.ZERO);
        }
    }
}
