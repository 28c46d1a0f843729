import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.CreateAclsResult;
import org.apache.kafka.clients.admin.DeleteAclsResult;
import org.apache.kafka.clients.admin.DeleteAclsResult.FilterResult;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;

/**
 * The story driver of the Java AdminClient; tests/clients/drivers.py describes what it reads and
 * prints. It is compiled with one of two classes Bindings, since the classes of a resource changed
 * with Kafka 2.0.
 */
public final class Story {
    private static final long SECONDS = 15;
    private static AdminClient admin;
    private static List<String> tls = List.of();

    private Story() {
    }

    public static void main(String[] args) throws Exception {
        BufferedReader steps =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String step; (step = steps.readLine()) != null; ) {
            List<String> words = Arrays.asList(step.split(" "));
            System.out.println(answer(words.get(0), words.subList(1, words.size())));
        }
    }

    private static String answer(String verb, List<String> words) throws Exception {
        try {
            return "{\"result\":" + result(verb, words) + "}";
        } catch (ExecutionException e) {
            return "{\"error\":" + nameOf(e.getCause()) + "}";
        } catch (TimeoutException e) {
            return "{\"error\":" + nameOf(e) + "}";
        }
    }

    private static String result(String verb, List<String> words) throws Exception {
        switch (verb) {
            case "connect":
                return connect(
                    words.get(0), words.get(1), words.get(2), words.subList(3, words.size()));
            case "tls":
                tls = words;
                return "null";
            case "create":
                return create(words);
            case "list":
                return list(words.get(0));
            case "delete":
                return delete(words);
            case "disconnect":
                tls = List.of();
                return disconnect();
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    private static String connect(
            String bootstrap, String user, String password, List<String> options) {
        disconnect();
        String mechanism = options.isEmpty() ? "PLAIN" : options.get(0);
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("request.timeout.ms", "20000");
        config.put("security.protocol",
            (user.equals("-") ? "" : "SASL_") + (tls.isEmpty() ? "PLAINTEXT" : "SSL"));
        if (!tls.isEmpty()) {
            config.put("ssl.truststore.type", "PEM");
            config.put("ssl.truststore.location", tls.get(0));
        }
        if (tls.size() > 1) {
            config.put("ssl.keystore.type", "PEM");
            config.put("ssl.keystore.location", tls.get(1));
        }
        config.put("sasl.mechanism", mechanism);
        config.put("sasl.jaas.config", String.format(
            "org.apache.kafka.common.security.%sLoginModule required"
                + " username=\"%s\" password=\"%s\"%s;",
            mechanism.equals("PLAIN") ? "plain.Plain" : "scram.Scram", user, password,
            options.contains("token") ? " tokenauth=\"true\"" : ""));
        admin = AdminClient.create(config);
        return "null";
    }

    private static String disconnect() {
        if (admin != null) {
            admin.close();
        }
        admin = null;
        return "null";
    }

    private static String create(List<String> acls) throws Exception {
        List<AclBinding> bindings = new ArrayList<>();
        for (String acl : acls) {
            bindings.add(Bindings.binding(acl.split(",", -1)));
        }
        CreateAclsResult created = admin.createAcls(bindings);
        List<String> results = new ArrayList<>();
        for (AclBinding binding : bindings) {
            results.add(errorOf(created.values().get(binding)));
        }
        return Json.array(results);
    }

    private static String list(String filter) throws Exception {
        List<String> found = new ArrayList<>();
        Collection<AclBinding> described =
            admin.describeAcls(filter(filter)).values().get(SECONDS, TimeUnit.SECONDS);
        for (AclBinding binding : described) {
            found.add(Json.string(Bindings.text(binding)));
        }
        return Json.array(found);
    }

    private static String delete(List<String> words) throws Exception {
        List<AclBindingFilter> filters = new ArrayList<>();
        for (String word : words) {
            filters.add(filter(word));
        }
        DeleteAclsResult deleted = admin.deleteAcls(filters);
        List<String> results = new ArrayList<>();
        for (AclBindingFilter filter : filters) {
            results.add(deletedBy(deleted.values().get(filter)));
        }
        return Json.array(results);
    }

    private static String deletedBy(KafkaFuture<DeleteAclsResult.FilterResults> future)
            throws InterruptedException, TimeoutException {
        try {
            List<String> found = new ArrayList<>();
            for (FilterResult one : future.get(SECONDS, TimeUnit.SECONDS).values()) {
                found.add(one.exception() == null
                    ? Json.string(Bindings.text(one.binding())) : nameOf(one.exception()));
            }
            return Json.array(found);
        } catch (ExecutionException e) {
            return nameOf(e.getCause());
        }
    }

    private static AclBindingFilter filter(String word) {
        String[] fields = word.split(",", -1);
        for (int i = 0; i < fields.length; i++) {
            fields[i] = fields[i].isEmpty() ? null : fields[i];
        }
        return Bindings.filter(fields);
    }

    private static String errorOf(KafkaFuture<Void> future)
            throws InterruptedException, TimeoutException {
        try {
            future.get(SECONDS, TimeUnit.SECONDS);
            return "null";
        } catch (ExecutionException e) {
            return nameOf(e.getCause());
        }
    }

    private static String nameOf(Throwable error) {
        return Json.string(error.getClass().getSimpleName());
    }
}
