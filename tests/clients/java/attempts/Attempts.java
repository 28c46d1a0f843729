import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.streams.errors.StreamsException;

/**
 * The driver of the Java clients' attempts; tests/clients/authorization/drivers.py describes what
 * it reads and prints.
 */
public final class Attempts {
    /** One attempt: its outcome, or the exception that the client raised. */
    interface Attempt {
        String outcome(Session session, List<String> resources) throws Exception;
    }

    private static final Map<String, Attempt> ATTEMPTS = new HashMap<>();

    static {
        ATTEMPTS.putAll(Producing.ATTEMPTS);
        ATTEMPTS.putAll(Consuming.ATTEMPTS);
        ATTEMPTS.putAll(Streaming.ATTEMPTS);
        ATTEMPTS.putAll(Exchanging.ATTEMPTS);
        ATTEMPTS.putAll(Administering.ATTEMPTS);
    }

    private Attempts() {
    }

    public static void main(String[] args) throws Exception {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            List<String> words = Arrays.asList(line.split(" "));
            Duration patience = Duration.ofMillis(Math.round(1000 * Double.parseDouble(words.get(1))));
            Session session = new Session(words.get(2), words.get(3), words.get(4), patience);
            System.out.println(answer(words.get(0), session, words.subList(5, words.size())));
        }
        // Clients that were closed without waiting for them may still have threads.
        System.exit(0);
    }

    private static String answer(String verb, Session session, List<String> resources) {
        long started = System.nanoTime();
        String outcome;
        try {
            outcome = ATTEMPTS.get(verb).outcome(session, resources);
        } catch (Exception e) {
            outcome = cause(e).getClass().getSimpleName();
        }
        double seconds = (System.nanoTime() - started) / 1e9;
        return String.format("{\"outcome\":%s,\"seconds\":%.3f}", Json.string(outcome), seconds);
    }

    private static Throwable cause(Throwable error) {
        boolean wraps = error instanceof ExecutionException || error instanceof StreamsException
            || error.getClass() == KafkaException.class;
        return wraps && error.getCause() != null ? cause(error.getCause()) : error;
    }
}
