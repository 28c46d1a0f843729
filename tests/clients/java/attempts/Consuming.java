import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** What applications attempt with a KafkaConsumer or a KafkaShareConsumer. */
final class Consuming {
    static final Map<String, Attempts.Attempt> ATTEMPTS = Map.of(
        "assign", Consuming::assign,
        "subscribe", (session, resources) -> subscribe(session, "classic", resources),
        "subscribe-by-heartbeat", (session, resources) -> subscribe(session, "consumer", resources),
        "commit", Consuming::commit,
        "share", Consuming::share);

    private static final Duration ONE_POLL = Duration.ofMillis(50);
    private static final CloseOptions AT_ONCE = CloseOptions.timeout(Duration.ZERO);

    private Consuming() {
    }

    private static KafkaConsumer<String, String> consumer(Properties config) {
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("fetch.max.wait.ms", "50");
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private static String assign(Session session, List<String> resources) {
        KafkaConsumer<String, String> consumer = consumer(session.config());
        try {
            consumer.assign(Set.of(new TopicPartition(resources.get(0), 0)));
            return read(session, consumer);
        } finally {
            consumer.close(AT_ONCE);
        }
    }

    private static String subscribe(Session session, String protocol, List<String> resources) {
        KafkaConsumer<String, String> consumer = consumer(
            session.config("group.protocol", protocol, "group.id", resources.get(1)));
        try {
            consumer.subscribe(Set.of(resources.get(0)));
            return read(session, consumer);
        } finally {
            consumer.close(AT_ONCE);
        }
    }

    /** Polls until a fetch was answered, and once more: that is when its error would be thrown. */
    private static String read(Session session, KafkaConsumer<String, String> consumer) {
        boolean isAnswered = false;
        while (!session.isOver()) {
            consumer.poll(ONE_POLL);
            if (isAnswered) {
                return Session.DONE;
            }
            isAnswered = fetches(consumer) > 0;
        }
        return Session.NOTHING;
    }

    private static double fetches(KafkaConsumer<String, String> consumer) {
        return consumer.metrics().values().stream()
            .filter(metric -> metric.metricName().name().equals("fetch-total"))
            .mapToDouble(metric -> (Double) metric.metricValue())
            .sum();
    }

    private static String commit(Session session, List<String> resources) {
        TopicPartition partition = new TopicPartition(resources.get(0), 0);
        KafkaConsumer<String, String> consumer =
            consumer(session.config("group.id", resources.get(1)));
        try {
            consumer.assign(Set.of(partition));
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(0)));
            return Session.DONE;
        } finally {
            consumer.close(AT_ONCE);
        }
    }

    private static String share(Session session, List<String> resources) {
        KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(
            session.config("group.id", resources.get(1)),
            new StringDeserializer(), new StringDeserializer());
        try {
            consumer.subscribe(Set.of(resources.get(0)));
            while (!session.isOver()) {
                consumer.poll(ONE_POLL);
            }
            return Session.NOTHING;
        } finally {
            consumer.close(Duration.ZERO);
        }
    }
}
