import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** What applications attempt with a KafkaProducer. */
final class Producing {
    static final Map<String, Attempts.Attempt> ATTEMPTS = Map.of(
        "produce", (session, resources) ->
            produce(session.config("enable.idempotence", "false"), session, resources.get(0)),
        "produce-idempotently", (session, resources) ->
            produce(session.config("enable.idempotence", "true"), session, resources.get(0)),
        "produce-in-transaction", (session, resources) ->
            produceInTransaction(session, resources.get(0), resources.get(1)));

    private Producing() {
    }

    private static KafkaProducer<String, String> producer(Properties config, Session session) {
        String millis = Long.toString(session.patience.toMillis());
        config.put("max.block.ms", millis);
        config.put("delivery.timeout.ms", millis);
        config.put("linger.ms", "0");
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    private static String produce(Properties config, Session session, String topic)
            throws Exception {
        KafkaProducer<String, String> producer = producer(config, session);
        try {
            producer.send(new ProducerRecord<>(topic, "value")).get();
            return Session.DONE;
        } finally {
            producer.close(Duration.ZERO);
        }
    }

    private static String produceInTransaction(Session session, String id, String topic)
            throws Exception {
        KafkaProducer<String, String> producer =
            producer(session.config("transactional.id", id), session);
        try {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, "value")).get();
            producer.commitTransaction();
            return Session.DONE;
        } finally {
            producer.close(Duration.ZERO);
        }
    }
}
