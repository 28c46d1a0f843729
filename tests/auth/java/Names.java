import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.common.config.internals.BrokerSecurityConfigs;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * What Java and Kafka's own classes make of names, as a filter: a line "question argument ..." in, a
 * line of results out. A text is its UTF-16 units in hex after a dot. Where an exception ends the
 * work there is "!" and the name of its class instead.
 */
public final class Names {
    private Names() {
    }

    private interface Step {
        String take() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            List<String> words = new ArrayList<>();
            for (String word : line.split(" ", -1)) {
                words.add(word.startsWith(".") ? fromHex(word.substring(1)) : word);
            }
            byte[] answer = (String.join(" ", answer(words)) + "\n").getBytes("US-ASCII");
            System.out.write(answer, 0, answer.length);
            System.out.flush();
        }
    }

    private static List<String> answer(List<String> words) {
        switch (words.get(0)) {
            case "regex":
                return regex(words.get(1), words.get(2), words.get(3));
            case "ssl":
                return ssl(words.get(1), words.get(2));
            case "kerberos":
                return kerberos(words.get(1), words.get(2), words.get(3));
            case "subject":
                return List.of(attempt(() -> subject(words.get(1))));
            case "case":
                return List.of(toHex(words.get(1).toLowerCase(Locale.ENGLISH)),
                    toHex(words.get(1).toUpperCase(Locale.ENGLISH)));
            default:
                throw new IllegalArgumentException(words.get(0));
        }
    }

    /** Whether all matches, all matches replaced, the first match replaced; or why not compiled. */
    private static List<String> regex(String pattern, String replacement, String text) {
        Pattern compiled;
        try {
            compiled = Pattern.compile(pattern);
        } catch (RuntimeException refusal) {
            return List.of(nameOf(refusal));
        }
        return List.of(
            attempt(() -> String.valueOf(compiled.matcher(text).matches())),
            attempt(() -> compiled.matcher(text).replaceAll(replacement)),
            attempt(() -> compiled.matcher(text).replaceFirst(replacement)));
    }

    /** Whether the rules parse, and the name. */
    private static List<String> ssl(String rules, String name) {
        SslPrincipalMapper mapper;
        try {
            mapper = SslPrincipalMapper.fromRules((String) setting(
                BrokerSecurityConfigs.SSL_PRINCIPAL_MAPPING_RULES_CONFIG, rules));
        } catch (RuntimeException refusal) {
            return List.of(nameOf(refusal));
        }
        return List.of(toHex("parsed"), attempt(() -> mapper.getName(name)));
    }

    @SuppressWarnings("unchecked")
    private static List<String> kerberos(String realm, String rules, String name) {
        KerberosShortNamer namer;
        try {
            namer = KerberosShortNamer.fromUnparsedRules(realm, (List<String>) setting(
                BrokerSecurityConfigs.SASL_KERBEROS_PRINCIPAL_TO_LOCAL_RULES_CONFIG, rules));
        } catch (RuntimeException refusal) {
            return List.of(nameOf(refusal));
        }
        return List.of(toHex("parsed"), attempt(() -> namer.shortName(KerberosName.parse(name))));
    }

    private static Object setting(String name, String value) {
        return BrokerSecurityConfigs.CONFIG_DEF.parse(Map.of(name, value)).get(name);
    }

    private static String subject(String certificate) throws Exception {
        byte[] bytes = new byte[certificate.length()];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) certificate.charAt(i);
        }
        return ((X509Certificate) CertificateFactory.getInstance("X.509")
            .generateCertificate(new ByteArrayInputStream(bytes)))
            .getSubjectX500Principal().getName();
    }

    private static String attempt(Step step) {
        try {
            return toHex(step.take());
        } catch (Exception | StackOverflowError refusal) {
            return nameOf(refusal);
        }
    }

    private static String nameOf(Throwable refusal) {
        return "!" + refusal.getClass().getSimpleName();
    }

    private static String fromHex(String hex) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < hex.length(); i += 4) {
            text.append((char) Integer.parseInt(hex.substring(i, i + 4), 16));
        }
        return text.toString();
    }

    private static String toHex(String text) {
        StringBuilder hex = new StringBuilder(".");
        for (char unit : text.toCharArray()) {
            for (int shift = 12; shift >= 0; shift -= 4) {
                hex.append(Character.forDigit(unit >> shift & 15, 16));
            }
        }
        return hex.toString();
    }
}
