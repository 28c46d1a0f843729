import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/** What operators attempt with an Admin client. */
final class Administering {
    static final Map<String, Attempts.Attempt> ATTEMPTS = new HashMap<>();

    static {
        addTopics();
        addGroups();
        addCluster();
    }

    private Administering() {
    }

    private static void add(String verb, BiFunction<Admin, String, KafkaFuture<?>> operation) {
        ATTEMPTS.put(verb, (session, resources) -> {
            try (Admin admin = Admin.create(session.config())) {
                String name = resources.isEmpty() ? "" : resources.get(0);
                operation.apply(admin, name).get(
                    2 * session.patience.toMillis(), TimeUnit.MILLISECONDS);
                return Session.DONE;
            }
        });
    }

    private static void addTopics() {
        add("create-topic", (admin, topic) ->
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all());
        add("delete-topic", (admin, topic) -> admin.deleteTopics(List.of(topic)).all());
        add("describe-topic", (admin, topic) -> admin.describeTopics(List.of(topic)).allTopicNames());
        add("create-partitions", (admin, topic) ->
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(9))).all());
        add("delete-records", (admin, topic) ->
            admin.deleteRecords(Map.of(first(topic), RecordsToDelete.beforeOffset(0))).all());
        add("describe-topic-config", (admin, topic) ->
            admin.describeConfigs(List.of(config(ConfigResource.Type.TOPIC, topic))).all());
        add("alter-topic-config", (admin, topic) ->
            alter(admin, config(ConfigResource.Type.TOPIC, topic), "retention.ms"));
        add("describe-producers", (admin, topic) ->
            admin.describeProducers(List.of(first(topic))).all());
    }

    private static void addGroups() {
        add("describe-group", (admin, group) ->
            admin.describeConsumerGroups(List.of(group)).all());
        add("describe-classic-group", (admin, group) ->
            admin.describeClassicGroups(List.of(group)).all());
        add("describe-share-group", (admin, group) -> admin.describeShareGroups(List.of(group)).all());
        add("delete-group", (admin, group) -> admin.deleteConsumerGroups(List.of(group)).all());
        add("list-offsets-of-group", (admin, group) ->
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata());
        add("alter-offsets-of-group", (admin, group) ->
            admin.alterConsumerGroupOffsets(
                group, Map.of(first("orders"), new OffsetAndMetadata(0))).all());
        add("delete-offsets-of-group", (admin, group) ->
            admin.deleteConsumerGroupOffsets(group, Set.of(first("orders"))).all());
        add("describe-transaction", (admin, id) -> admin.describeTransactions(List.of(id)).all());
        add("fence-producers", (admin, id) -> admin.fenceProducers(List.of(id)).all());
    }

    private static void addCluster() {
        add("describe-broker-config", (admin, broker) ->
            admin.describeConfigs(List.of(config(ConfigResource.Type.BROKER, broker))).all());
        add("alter-broker-config", (admin, broker) ->
            alter(admin, config(ConfigResource.Type.BROKER, broker), "log.cleaner.threads"));
        add("describe-log-dirs", (admin, broker) ->
            admin.describeLogDirs(List.of(Integer.valueOf(broker))).allDescriptions());
        add("unregister-broker", (admin, broker) ->
            admin.unregisterBroker(Integer.parseInt(broker)).all());
        add("describe-quotas", (admin, none) ->
            admin.describeClientQuotas(ClientQuotaFilter.all()).entities());
        add("describe-scram-credentials", (admin, user) ->
            admin.describeUserScramCredentials(List.of(user)).all());
        add("alter-scram-credentials", (admin, user) ->
            admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(
                user, new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret"))).all());
        add("describe-quorum", (admin, none) -> admin.describeMetadataQuorum().quorumInfo());
        add("list-reassignments", (admin, none) ->
            admin.listPartitionReassignments().reassignments());
        add("reassign", (admin, topic) ->
            admin.alterPartitionReassignments(Map.of(
                first(topic), Optional.of(new NewPartitionReassignment(List.of(1))))).all());
        add("elect-leaders", (admin, topic) ->
            admin.electLeaders(ElectionType.PREFERRED, Set.of(first(topic))).all());
        add("update-features", (admin, feature) ->
            admin.updateFeatures(
                Map.of(feature, new FeatureUpdate((short) 1, UpgradeType.UPGRADE)),
                new UpdateFeaturesOptions()).all());
        add("describe-acls", (admin, none) ->
            admin.describeAcls(org.apache.kafka.common.acl.AclBindingFilter.ANY).values());
    }

    private static KafkaFuture<Void> alter(Admin admin, ConfigResource resource, String name) {
        AlterConfigOp unset = new AlterConfigOp(new ConfigEntry(name, ""), AlterConfigOp.OpType.DELETE);
        return admin.incrementalAlterConfigs(Map.of(resource, List.of(unset))).all();
    }

    private static TopicPartition first(String topic) {
        return new TopicPartition(topic, 0);
    }

    private static ConfigResource config(ConfigResource.Type type, String name) {
        return new ConfigResource(type, name);
    }
}
