import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedKeyManager;
import javax.net.ssl.X509TrustManager;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;

/**
 * Answers what Java and Kafka make of key stores. Each line of standard input is a verb and its
 * words, separated by tabs; each is answered by a line of JSON.
 *
 * <pre>
 * make TYPE PATH PASSWORD KEY_PASSWORD (key:ALIAS:PKCS12 | cert:ALIAS:PEM)...   null
 * served TYPE PATH PASSWORD     {"RSA": subjects of the chain, ...} of the keys that would serve
 * trusted TYPE PATH PASSWORD    subjects of the certificates that are trusted
 * configure NAME=VALUE...       whether Kafka's engine factory accepts these settings
 * </pre>
 */
public final class TlsOracle {
    private static final Set<String> SECRETS = Set.of("ssl.keystore.password",
        "ssl.key.password", "ssl.keystore.key", "ssl.keystore.certificate.chain",
        "ssl.truststore.password", "ssl.truststore.certificates");
    private static final Set<String> LISTS =
        Set.of("ssl.enabled.protocols", "ssl.cipher.suites");

    private TlsOracle() {
    }

    public static void main(String[] args) throws Exception {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            List<String> words = Arrays.asList(line.split("\t", -1));
            System.out.println(answer(words.get(0), words.subList(1, words.size())));
        }
    }

    private static String answer(String verb, List<String> words) throws Exception {
        switch (verb) {
            case "make":
                make(words);
                return "null";
            case "served":
                return served(words.get(0), words.get(1), words.get(2));
            case "trusted":
                return trusted(words.get(0), words.get(1), words.get(2));
            case "configure":
                return configure(words);
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    private static void make(List<String> words) throws Exception {
        KeyStore made = KeyStore.getInstance(words.get(0));
        made.load(null, null);
        for (String entry : words.subList(4, words.size())) {
            String[] parts = entry.split(":", 3);
            if (parts[0].equals("key")) {
                KeyStore source = load("PKCS12", parts[2], words.get(2));
                String alias = source.aliases().nextElement();
                made.setKeyEntry(parts[1],
                    source.getKey(alias, words.get(2).toCharArray()),
                    words.get(3).toCharArray(), source.getCertificateChain(alias));
            } else {
                try (InputStream in = Files.newInputStream(Path.of(parts[2]))) {
                    made.setCertificateEntry(parts[1],
                        CertificateFactory.getInstance("X.509").generateCertificate(in));
                }
            }
        }
        try (OutputStream out = Files.newOutputStream(Path.of(words.get(1)))) {
            made.store(out, words.get(2).toCharArray());
        }
    }

    private static KeyStore load(String type, String path, String password) throws Exception {
        KeyStore loaded = KeyStore.getInstance(type);
        try (InputStream in = Files.newInputStream(Path.of(path))) {
            loaded.load(in, password.isEmpty() ? null : password.toCharArray());
        }
        return loaded;
    }

    private static String served(String type, String path, String password) throws Exception {
        KeyManagerFactory factory =
            KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        factory.init(load(type, path, password), password.toCharArray());
        X509ExtendedKeyManager manager = (X509ExtendedKeyManager) factory.getKeyManagers()[0];
        List<String> found = new ArrayList<>();
        for (String keyType : List.of("RSA", "EC", "EdDSA")) {
            String alias = manager.chooseEngineServerAlias(keyType, null, null);
            if (alias != null) {
                found.add(Json.string(keyType) + ":"
                    + subjects(Arrays.asList(manager.getCertificateChain(alias))));
            }
        }
        return "{" + String.join(",", found) + "}";
    }

    private static String trusted(String type, String path, String password) throws Exception {
        TrustManagerFactory factory =
            TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(load(type, path, password));
        X509TrustManager manager = (X509TrustManager) factory.getTrustManagers()[0];
        return subjects(Arrays.asList(manager.getAcceptedIssuers()));
    }

    private static String subjects(List<? extends Certificate> certificates) {
        List<String> names = new ArrayList<>();
        for (Certificate each : certificates) {
            names.add(Json.string(((X509Certificate) each).getSubjectX500Principal().getName()));
        }
        return Json.array(names);
    }

    private static String configure(List<String> settings) {
        Map<String, Object> configs = new HashMap<>(Map.of("ssl.protocol", "TLSv1.3",
            "ssl.keystore.type", "JKS", "ssl.truststore.type", "JKS", "ssl.client.auth", "none",
            "ssl.cipher.suites", List.of(), "ssl.enabled.protocols", List.of("TLSv1.2",
                "TLSv1.3")));
        for (String setting : settings) {
            String[] parts = setting.split("=", 2);
            // A line break cannot stand in a line.
            String value = parts[1].replace('|', '\n');
            if (SECRETS.contains(parts[0])) {
                configs.put(parts[0], new Password(value));
            } else if (LISTS.contains(parts[0])) {
                configs.put(parts[0], List.of(value.split(",")));
            } else {
                configs.put(parts[0], value);
            }
        }
        try (DefaultSslEngineFactory factory = new DefaultSslEngineFactory()) {
            factory.configure(configs);
            factory.createServerSslEngine("localhost", 0);
            return "true";
        } catch (RuntimeException e) {
            return "false";
        }
    }
}
