import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.security.authorizer.AclEntry;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Asks Kafka's StandardAuthorizer, without a broker around it. Each line of standard input is one of
 *
 * <pre>
 * load FILE HOST PRINCIPAL       the ACLs, and the one that asks (a name, without "User:")
 * authorize PASSES NAME...       READ of each topic, a call for each
 * together PASSES NAME...        READ of all these topics in one call
 * operations PASSES NAME...      all operations of each topic, a call for each
 * by-type PASSES                 READ of any topic
 * changed-authorize PASSES NAME  READ of the topic, each time after a change of ACLs
 * changed-by-type PASSES         READ of any topic, each time after a change of ACLs
 * decide DIRECTORY               all questions of its files, see {@link Decider}
 * </pre>
 *
 * and is answered by one of JSON: the CPU time of the calls alone, and how often they said ALLOWED.
 */
public final class AuthorizerLoop {
    private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    private final List<AclOperation> operations =
        List.copyOf(AclEntry.supportedOperations(ResourceType.TOPIC));
    private StandardAuthorizer authorizer;
    private RequestContext context;
    /** The ACL that is added and removed where changes are measured; null if it is not there. */
    private Uuid changing;

    private AuthorizerLoop() {
    }

    public static void main(String[] args) throws Exception {
        AuthorizerLoop loop = new AuthorizerLoop();
        BufferedReader commands =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String command; (command = commands.readLine()) != null; ) {
            System.out.println(loop.answer(command.split(" ")));
        }
    }

    private String answer(String[] words) throws Exception {
        if (words[0].equals("load")) {
            load(Path.of(words[1]), words[2], words[3]);
            return String.format("{\"acls\": %d}", authorizer.aclCount());
        }
        if (words[0].equals("decide")) {
            return String.format("{\"decided\": %d}", Decider.decide(Path.of(words[1])));
        }
        int passes = Integer.parseInt(words[1]);
        Work work = work(words[0], Arrays.asList(words).subList(2, words.length));
        long nanoseconds = 0;
        long allowed = 0;
        for (int pass = 0; pass < passes; pass++) {
            work.prepare();
            long begin = threads.getCurrentThreadCpuTime();
            allowed += work.run();
            nanoseconds += threads.getCurrentThreadCpuTime() - begin;
        }
        return String.format("{\"nanoseconds\": %d, \"allowed\": %d}", nanoseconds, allowed);
    }

    private Work work(String verb, List<String> names) {
        switch (verb) {
            case "authorize":
                return calls(names.stream().map(name -> List.of(read(name))).toList());
            case "together":
                return calls(List.of(names.stream().map(this::read).toList()));
            case "operations":
                return calls(names.stream().map(this::eachOperation).toList());
            case "by-type":
                return this::byType;
            case "changed-authorize":
                return new AfterAChange(calls(List.of(List.of(read(names.get(0))))));
            case "changed-by-type":
                return new AfterAChange(this::byType);
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    private void load(Path file, String host, String principal) throws Exception {
        List<StandardAcl> acls = new ArrayList<>();
        try (BufferedReader lines = Files.newBufferedReader(file)) {
            for (String line; (line = lines.readLine()) != null; ) {
                acls.add(acl(line.split("\t")));
            }
        }
        authorizer = Authorizers.started(Map.of(), acls);
        context = Authorizers.context(
            InetAddress.getByName(host), new KafkaPrincipal(KafkaPrincipal.USER_TYPE, principal));
    }

    private static StandardAcl acl(String[] fields) {
        return new StandardAcl(
            ResourceType.valueOf(fields[0]), fields[1], PatternType.valueOf(fields[2]), fields[3],
            fields[4], AclOperation.valueOf(fields[5]), AclPermissionType.valueOf(fields[6]));
    }

    private Action read(String name) {
        return action(AclOperation.READ, name, true);
    }

    /** What AuthHelper.authorizedOperations asks for one topic. */
    private List<Action> eachOperation(String name) {
        return operations.stream().map(operation -> action(operation, name, false)).toList();
    }

    private static Action action(AclOperation operation, String name, boolean log) {
        ResourcePattern topic =
            new ResourcePattern(ResourceType.TOPIC, name, PatternType.LITERAL);
        return new Action(operation, topic, 1, log, log);
    }

    private Work calls(List<List<Action>> calls) {
        return () -> {
            long allowed = 0;
            for (List<Action> actions : calls) {
                for (AuthorizationResult result : authorizer.authorize(context, actions)) {
                    allowed += result == AuthorizationResult.ALLOWED ? 1 : 0;
                }
            }
            return allowed;
        };
    }

    private long byType() {
        AuthorizationResult result =
            authorizer.authorizeByResourceType(context, AclOperation.READ, ResourceType.TOPIC);
        return result == AuthorizationResult.ALLOWED ? 1 : 0;
    }

    /** Calls whose time is measured, and what has to be done before. */
    private interface Work {
        default void prepare() {
        }

        long run();
    }

    /** Work that finds an ACL of the principal added or removed since it was last done. */
    private final class AfterAChange implements Work {
        private final Work work;

        AfterAChange(Work work) {
            this.work = work;
        }

        @Override
        public void prepare() {
            if (changing == null) {
                changing = Uuid.randomUuid();
                authorizer.addAcl(changing, new StandardAcl(
                    ResourceType.TOPIC, "changing", PatternType.LITERAL,
                    context.principal().toString(), "*", AclOperation.READ,
                    AclPermissionType.ALLOW));
            } else {
                authorizer.removeAcl(changing);
                changing = null;
            }
        }

        @Override
        public long run() {
            return work.run();
        }
    }
}
