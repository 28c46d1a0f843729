import java.net.InetAddress;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;

/** Kafka's StandardAuthorizer without a broker around it. */
final class Authorizers {
    private Authorizers() {
    }

    /** An authorizer that is ready to answer, with settings as in server.properties. */
    static StandardAuthorizer started(Map<String, String> settings, Iterable<StandardAcl> acls) {
        Map<String, String> all = new HashMap<>(settings);
        all.put("node.id", "1");
        Map<Uuid, StandardAcl> byId = new HashMap<>();
        acls.forEach(acl -> byId.put(Uuid.randomUuid(), acl));
        StandardAuthorizer authorizer = new StandardAuthorizer();
        authorizer.configure(all);
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        authorizer.loadSnapshot(byId);
        authorizer.completeInitialLoad();
        return authorizer;
    }

    /** A request of someone at an address. */
    static RequestContext context(InetAddress host, KafkaPrincipal principal) {
        return new RequestContext(
            new RequestHeader(ApiKeys.METADATA, (short) 12, "benchmark", 1), "1", host, principal,
            ListenerName.normalised("PLAINTEXT"), SecurityProtocol.PLAINTEXT,
            ClientInformation.EMPTY, false);
    }
}
