// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A value as MIME types. Runs the value's own methods. */
final class Representations {
    private Representations() {}

    static Map<String, Object> of(Object value) throws Exception {
        Map<String, Object> data = new LinkedHashMap<>();
        data.put("text/plain", text(value));
        byte[] png = png(value);
        if (png != null) data.put("image/png", Base64.getEncoder().encodeToString(png));
        if (value instanceof Map || value instanceof List) {
            try {
                data.put("application/json", Json.parse(Json.write(value)));  // a copy: the value may change
            } catch (IllegalArgumentException notSimple) {
                data.remove("application/json");
            }
        }
        return data;
    }

    /** One pair of quotes is taken off on the way; text that has quotes of its own is given another. */
    private static String text(Object value) {
        if (value instanceof Character) return "'" + value + "'";
        String text = plain(value);
        boolean quoted = text.length() > 1 && (text.charAt(0) == '"' || text.charAt(0) == '\'')
            && text.charAt(0) == text.charAt(text.length() - 1);
        return value instanceof String || quoted ? '"' + text + '"' : text;
    }

    private static String plain(Object value) {
        if (value == null || !value.getClass().isArray()) return String.valueOf(value);
        String wrapped = Arrays.deepToString(new Object[] {value});
        return wrapped.substring(1, wrapped.length() - 1);
    }

    /** Null when it is no image. By reflection: a runtime without java.desktop has images of no kind. */
    private static byte[] png(Object value) throws Exception {
        if (value == null || !isImage(value.getClass())) return null;
        Class<?> image = Class.forName("java.awt.image.RenderedImage");
        Class<?> io = Class.forName("javax.imageio.ImageIO");
        io.getMethod("setUseCache", boolean.class).invoke(null, false);  // no files
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        Object written = io.getMethod("write", image, String.class, OutputStream.class).invoke(null, value, "png", out);
        return Boolean.TRUE.equals(written) ? out.toByteArray() : null;
    }

    private static boolean isImage(Class<?> type) {
        if (type == null) return false;
        if (type.getName().equals("java.awt.image.RenderedImage")) return true;
        for (Class<?> parent : type.getInterfaces())
            if (isImage(parent)) return true;
        return isImage(type.getSuperclass());
    }
}
