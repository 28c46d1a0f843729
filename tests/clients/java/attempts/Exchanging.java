import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Applications that exchange many records. Their outcome has each record's place or value. */
final class Exchanging {
    static final Map<String, Attempts.Attempt> ATTEMPTS = Map.of(
        "write-all", Exchanging::writeAll,
        "read-all", (session, resources) -> readAll(session, "classic", resources),
        "read-all-by-heartbeat", (session, resources) -> readAll(session, "consumer", resources),
        "transact", Exchanging::transact);

    private static final int COUNT = 200;
    private static final Duration ONE_POLL = Duration.ofMillis(50);

    private Exchanging() {
    }

    private static KafkaProducer<String, String> producer(Session session, Properties config) {
        String millis = Long.toString(session.patience.toMillis());
        config.put("max.block.ms", millis);
        config.put("delivery.timeout.ms", millis);
        config.put("linger.ms", "0");
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(Properties config) {
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("fetch.max.wait.ms", "50");
        config.put("isolation.level", "read_committed");
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private static List<RecordMetadata> send(
            KafkaProducer<String, String> producer, String topic, String prefix) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        List<RecordMetadata> written = new ArrayList<>();
        // Without a right each further record would wait for as long as the first.
        written.add(producer.send(new ProducerRecord<>(topic, "key 0", prefix + 0)).get());
        for (int i = 1; i < COUNT; i++) {
            sent.add(producer.send(new ProducerRecord<>(topic, "key " + i, prefix + i)));
        }
        for (Future<RecordMetadata> future : sent) {
            written.add(future.get());
        }
        return written;
    }

    /** Writes records idempotently, and returns the partition and the offset of each. */
    private static String writeAll(Session session, List<String> resources) throws Exception {
        KafkaProducer<String, String> producer =
            producer(session, session.config("enable.idempotence", "true"));
        try {
            return send(producer, resources.get(0), "value ").stream()
                .map(place -> place.partition() + "@" + place.offset())
                .collect(Collectors.joining(" "));
        } finally {
            producer.close(Duration.ZERO);
        }
    }

    /** Reads all records as the only member of a group, and commits their offsets. */
    private static String readAll(Session session, String protocol, List<String> resources) {
        Properties config = session.config("group.protocol", protocol, "group.id", resources.get(1));
        KafkaConsumer<String, String> consumer = consumer(config);
        try {
            consumer.subscribe(Set.of(resources.get(0)));
            Set<String> values = poll(session, consumer);
            consumer.commitSync();
            return values + " " + committed(consumer, consumer.assignment());
        } finally {
            consumer.close(CloseOptions.timeout(Duration.ofSeconds(1)));
        }
    }

    private static Set<String> poll(Session session, KafkaConsumer<String, String> consumer) {
        Set<String> values = new TreeSet<>();
        while (values.size() < COUNT && !session.isOver()) {
            for (ConsumerRecord<String, String> record : consumer.poll(ONE_POLL)) {
                values.add(record.partition() + "@" + record.offset() + "=" + record.value());
            }
        }
        return values;
    }

    private static String committed(
            KafkaConsumer<String, String> consumer, Set<TopicPartition> partitions) {
        return new TreeSet<>(consumer.committed(partitions).entrySet().stream()
            .map(entry -> entry.getKey().partition() + "@" + entry.getValue().offset())
            .collect(Collectors.toList())).toString();
    }

    /** Aborts a transaction of records and an offset, commits another, and reads both back. */
    private static String transact(Session session, List<String> resources) throws Exception {
        String topic = resources.get(1);
        TopicPartition first = new TopicPartition(topic, 0);
        KafkaConsumer<String, String> consumer =
            consumer(session.config("group.id", resources.get(2)));
        KafkaProducer<String, String> producer =
            producer(session, session.config("transactional.id", resources.get(0)));
        try {
            producer.initTransactions();
            for (String prefix : List.of("aborted ", "committed ")) {
                producer.beginTransaction();
                send(producer, topic, prefix);
                OffsetAndMetadata offset = new OffsetAndMetadata(prefix.length());
                producer.sendOffsetsToTransaction(Map.of(first, offset), consumer.groupMetadata());
                if (prefix.startsWith("aborted")) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
            Set<TopicPartition> partitions = Set.of(first, new TopicPartition(topic, 1));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            return poll(session, consumer) + " " + committed(consumer, Set.of(first));
        } finally {
            producer.close(Duration.ZERO);
            consumer.close(CloseOptions.timeout(Duration.ZERO));
        }
    }
}
