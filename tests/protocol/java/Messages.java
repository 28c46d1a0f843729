import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/**
 * Kafka's own codec as a filter: a line "MessageName version bytes-in-hex" in, a line out with the
 * bytes that Kafka writes of what it read, and its values as JSON; or "!" and why it refuses.
 */
public final class Messages {
    private static final String PACKAGE = "org.apache.kafka.common.message.";

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            byte[] answer = (answer(line.split(" ", -1)) + "\n").getBytes(StandardCharsets.UTF_8);
            System.out.write(answer, 0, answer.length);
            System.out.flush();
        }
    }

    private static String answer(String[] words) {
        short version = Short.parseShort(words[1]);
        ByteBuffer bytes = ByteBuffer.wrap(fromHex(words[2]));
        try {
            Class<?> type = Class.forName(PACKAGE + words[0] + "Data");
            Message message = (Message) type.getConstructor(Readable.class, short.class)
                .newInstance(new ByteBufferAccessor(bytes), version);
            if (version < message.lowestSupportedVersion()
                || version > message.highestSupportedVersion() || bytes.hasRemaining()) {
                return "! unsupported, or " + bytes.remaining() + " bytes left";
            }
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer written = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(written), cache, version);
            JsonNode json = (JsonNode) Class.forName(PACKAGE + words[0] + "DataJsonConverter")
                .getMethod("write", type, short.class).invoke(null, message, version);
            return toHex(written.array()) + " " + json;
        } catch (InvocationTargetException refusal) {
            return "! " + refusal.getCause();
        } catch (ReflectiveOperationException | RuntimeException refusal) {
            return "! " + refusal;
        }
    }

    private static byte[] fromHex(String text) {
        byte[] bytes = new byte[text.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    private static String toHex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte each : bytes) {
            text.append(Character.forDigit(each >> 4 & 15, 16));
            text.append(Character.forDigit(each & 15, 16));
        }
        return text.toString();
    }
}
