import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Kafka's StandardAuthorizer, which also records each of its decisions as a line of JSON in the file
 * that the setting recording.file names: what its log should say, from what it was really asked.
 */
public final class RecordingAuthorizer extends StandardAuthorizer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private Path file;

    @Override
    public void configure(Map<String, ?> settings) {
        super.configure(settings);
        file = Path.of((String) settings.get("recording.file"));
    }

    @Override
    public List<AuthorizationResult> authorize(
            AuthorizableRequestContext context, List<Action> actions) {
        List<AuthorizationResult> results = super.authorize(context, actions);
        StringBuilder lines = new StringBuilder();
        try {
            for (int i = 0; i < actions.size(); i++) {
                Action action = actions.get(i);
                lines.append(JSON.writeValueAsString(Map.of(
                    "principal", context.principal().toString(),
                    "host", context.clientAddress().getHostAddress(),
                    "operation", action.operation().name(),
                    "resource_type", action.resourcePattern().resourceType().name(),
                    "resource_name", action.resourcePattern().name(),
                    "allowed", results.get(i) == AuthorizationResult.ALLOWED,
                    "reference_count", action.resourceReferenceCount(),
                    "api", ApiKeys.forId(context.requestType()).name))).append('\n');
            }
            append(file, lines);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return results;
    }

    /** A node that is broker and controller has two authorizers. */
    private static synchronized void append(Path file, CharSequence lines) throws IOException {
        Files.writeString(file, lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
}
