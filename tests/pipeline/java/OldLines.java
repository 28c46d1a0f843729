import java.lang.reflect.Method;
import java.net.InetAddress;
import java.util.List;
import java.util.Map;
import kafka.security.authorizer.AclAuthorizer;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/**
 * Has the two authorizers of Kafka 3.9 log decisions on three topics, for a user and a super user.
 *
 * <p>StandardAuthorizer decides by two ACLs. AclAuthorizer, whose line comes after each of its lines,
 * would need a ZooKeeper to decide, so it is told what to log.
 */
public final class OldLines {
    private OldLines() {
    }

    public static void main(String[] args) throws Exception {
        StandardAuthorizer standard = new StandardAuthorizer();
        standard.configure(Map.of("node.id", "1", "super.users", "User:admin"));
        standard.loadSnapshot(Map.of(
            Uuid.randomUuid(), acl("allowed", AclPermissionType.ALLOW),
            Uuid.randomUuid(), acl("denied", AclPermissionType.DENY)));
        standard.completeInitialLoad();
        AclAuthorizer old = new AclAuthorizer();
        Method log = AclAuthorizer.class.getDeclaredMethod(
            "logAuditMessage", AuthorizableRequestContext.class, Action.class, boolean.class);
        log.setAccessible(true);
        for (String user : List.of("alice, of the team", "admin")) {
            RequestContext context = context(user);
            for (String name : List.of("allowed", "denied", "unknown topic")) {
                Action action = new Action(
                    AclOperation.DESCRIBE_CONFIGS,
                    new ResourcePattern(ResourceType.TOPIC, name, PatternType.LITERAL), 2, true, true);
                standard.authorize(context, List.of(action));
                log.invoke(old, context, action, user.equals("admin") || name.equals("allowed"));
            }
        }
    }

    private static StandardAcl acl(String name, AclPermissionType permission) {
        return new StandardAcl(
            ResourceType.TOPIC, name, PatternType.LITERAL, "User:alice, of the team", "*",
            AclOperation.ALL, permission);
    }

    private static RequestContext context(String user) throws Exception {
        return new RequestContext(
            new RequestHeader(ApiKeys.DESCRIBE_CONFIGS, (short) 4, "test", 1), "1",
            InetAddress.getByName("::1"), new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user),
            ListenerName.normalised("PLAINTEXT"), SecurityProtocol.PLAINTEXT,
            ClientInformation.EMPTY, false);
    }
}
