import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * Reads lines of texts: an expression, and names. Each text is a dot and its UTF-8 in hexadecimal.
 * For each line it prints "=" and a digit for each name: 1 if the expression matches, 0 otherwise.
 * For an invalid expression it prints "!" and RE2/J's message.
 */
class Patterns {
    private static String text(String word) {
        return new String(HexFormat.of().parseHex(word.substring(1)), StandardCharsets.UTF_8);
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            StringBuilder answer = new StringBuilder("=");
            try {
                Pattern pattern = Pattern.compile(text(words[0]));
                for (int i = 1; i < words.length; i++) {
                    answer.append(pattern.matches(text(words[i])) ? '1' : '0');
                }
                System.out.println(answer);
            } catch (PatternSyntaxException error) {
                System.out.println("!" + error.getDescription());
            }
        }
    }
}
