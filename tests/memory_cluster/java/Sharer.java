import java.io.FileInputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Shares a topic, and does to each record what its value says: accept, release, reject or renew. The
 * last three are accepted when they come again. Each record is told as a line of value and delivery
 * count; how commits went is told at the end of each poll that brought some.
 */
final class Sharer {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        try (FileInputStream file = new FileInputStream(args[0])) {
            properties.load(file);
        }
        String topic = args[1];
        String group = args[2];
        int wanted = Integer.parseInt(args[3]);
        try (Admin admin = Admin.create(properties)) {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
            AlterConfigOp earliest = new AlterConfigOp(
                new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(resource, List.of(earliest))).all().get();
        }
        properties.put("group.id", group);
        properties.put("share.acknowledgement.mode", "explicit");
        StringDeserializer text = new StringDeserializer();
        try (KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(properties, text, text)) {
            consumer.subscribe(List.of(topic));
            share(consumer, wanted);
        } catch (ApiException refused) {
            System.out.println(refused.getClass().getSimpleName());
        }
    }

    private static void share(KafkaShareConsumer<String, String> consumer, int wanted) {
        List<String> renewed = new ArrayList<>();
        int done = 0;
        while (done < wanted) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                boolean again = record.deliveryCount().get() > 1 || renewed.contains(record.value());
                AcknowledgeType type = again
                    ? AcknowledgeType.ACCEPT : AcknowledgeType.valueOf(record.value());
                if (type == AcknowledgeType.RENEW) {
                    renewed.add(record.value());
                }
                System.out.println(
                    record.value() + " " + record.deliveryCount().get() + " " + type.name());
                consumer.acknowledge(record, type);
                if (type == AcknowledgeType.ACCEPT || type == AcknowledgeType.REJECT) {
                    done++;
                }
            }
            consumer.commitSync().forEach((partition, failed) -> failed.ifPresent(
                error -> System.out.println("failed: " + error)));
        }
    }
}
