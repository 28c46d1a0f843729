import java.io.BufferedReader;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Has Kafka's StandardAuthorizer decide on many questions of many principals, and tells by which rule.
 *
 * <p>They are asked and answered in files of a directory. All numbers are 32 bits wide, big-endian. A
 * text is a position among the texts; an operation and so on is its code of Kafka's protocol.
 *
 * <pre>
 * server.properties  the authorizer's settings
 * texts              each as its length in bytes, and UTF-8
 * acls               type, name, pattern type, principal, host, operation, permission of each
 * questions          principal, host, operation, type, name of each
 * answers            is written, for each question: 1 if it is allowed, else 0; and the rule, which is
 *                    the position of an ACL, or below 0 that of a rule of RULES, less their number
 * </pre>
 */
final class Decider {
    private static final List<String> RULES = List.of("SuperUser", "DefaultAllow", "DefaultDeny");

    private final String[] texts;
    private final StandardAuthorizer authorizer;
    private final Map<String, Integer> rules = new HashMap<>();
    private final KafkaPrincipal[] principals;
    private final InetAddress[] hosts;

    private Decider(Path directory) throws IOException {
        texts = texts(ByteBuffer.wrap(Files.readAllBytes(directory.resolve("texts"))));
        principals = new KafkaPrincipal[texts.length];
        hosts = new InetAddress[texts.length];
        List<StandardAcl> acls = new ArrayList<>();
        for (IntBuffer numbers = numbers(directory.resolve("acls")); numbers.hasRemaining(); ) {
            StandardAcl acl = acl(numbers);
            rules.put("MatchingAcl(acl=" + acl + ")", acls.size());
            acls.add(acl);
        }
        RULES.forEach(rule -> rules.put(rule, RULES.indexOf(rule) - RULES.size()));
        authorizer = Authorizers.started(settings(directory), acls);
    }

    /** Answers all questions of a directory, and returns their number. */
    static int decide(Path directory) throws IOException {
        Decider decider = new Decider(directory);
        IntBuffer questions = numbers(directory.resolve("questions"));
        int count = questions.remaining() / 5;
        ByteBuffer answers = ByteBuffer.allocate(count * 8);
        try (AuditLog log = new AuditLog()) {
            IntStream.range(0, count).parallel().forEach(number -> {
                boolean isAllowed = decider.isAllowed(questions.slice(number * 5, 5));
                answers.putInt(number * 8, isAllowed ? 1 : 0);
                answers.putInt(number * 8 + 4, decider.rules.get(log.latestRule()));
            });
        }
        Files.write(directory.resolve("answers"), answers.array());
        return count;
    }

    private boolean isAllowed(IntBuffer question) {
        int principal = question.get();
        if (principals[principal] == null) {
            principals[principal] = SecurityUtils.parseKafkaPrincipal(texts[principal]);
        }
        int host = question.get();
        if (hosts[host] == null) {
            hosts[host] = address(texts[host]);
        }
        AclOperation operation = AclOperation.fromCode((byte) question.get());
        ResourceType type = ResourceType.fromCode((byte) question.get());
        ResourcePattern resource =
            new ResourcePattern(type, texts[question.get()], PatternType.LITERAL);
        List<Action> actions = List.of(new Action(operation, resource, 1, true, true));
        return authorizer.authorize(Authorizers.context(hosts[host], principals[principal]), actions)
            .get(0) == AuthorizationResult.ALLOWED;
    }

    private static InetAddress address(String text) {
        try {
            return InetAddress.getByName(text);
        } catch (UnknownHostException e) {
            throw new IllegalArgumentException(text, e);
        }
    }

    private StandardAcl acl(IntBuffer numbers) {
        return new StandardAcl(
            ResourceType.fromCode((byte) numbers.get()), texts[numbers.get()],
            PatternType.fromCode((byte) numbers.get()), texts[numbers.get()],
            texts[numbers.get()], AclOperation.fromCode((byte) numbers.get()),
            AclPermissionType.fromCode((byte) numbers.get()));
    }

    private static Map<String, String> settings(Path directory) throws IOException {
        Properties settings = new Properties();
        try (BufferedReader file = Files.newBufferedReader(directory.resolve("server.properties"))) {
            settings.load(file);
        }
        return settings.stringPropertyNames().stream()
            .collect(Collectors.toMap(name -> name, settings::getProperty));
    }

    private static String[] texts(ByteBuffer data) {
        List<String> texts = new ArrayList<>();
        while (data.hasRemaining()) {
            byte[] text = new byte[data.getInt()];
            data.get(text);
            texts.add(new String(text, StandardCharsets.UTF_8));
        }
        return texts.toArray(new String[0]);
    }

    private static IntBuffer numbers(Path file) throws IOException {
        return ByteBuffer.wrap(Files.readAllBytes(file)).asIntBuffer();
    }

    /**
     * What Kafka logs of its decisions: nothing else says by which rule they were made.
     *
     * <p>slf4j-simple prints to System.err, whatever that is at the time, in the thread that decides.
     */
    private static final class AuditLog implements AutoCloseable {
        private static final String RULE = " based on rule ";
        private final PrintStream replaced = System.err;
        private final ThreadLocal<String> latest = new ThreadLocal<>();

        AuditLog() {
            System.setErr(new PrintStream(OutputStream.nullOutputStream()) {
                @Override
                public void println(String line) {
                    latest.set(line);
                }
            });
        }

        String latestRule() {
            String line = latest.get();
            return line.substring(line.lastIndexOf(RULE) + RULE.length());
        }

        @Override
        public void close() {
            System.setErr(replaced);
        }
    }
}
