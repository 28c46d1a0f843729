import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;

/** ACLs to and from their seven fields, for Kafka 2.0 and later. */
final class Bindings {
    private Bindings() {
    }

    static AclBinding binding(String[] f) {
        return new AclBinding(
            new ResourcePattern(ResourceType.valueOf(f[0]), f[1], PatternType.valueOf(f[2])),
            new AccessControlEntry(
                f[3], f[4], AclOperation.valueOf(f[5]), AclPermissionType.valueOf(f[6])));
    }

    static AclBindingFilter filter(String[] f) {
        return new AclBindingFilter(
            new ResourcePatternFilter(ResourceType.valueOf(f[0]), f[1], PatternType.valueOf(f[2])),
            new AccessControlEntryFilter(
                f[3], f[4], AclOperation.valueOf(f[5]), AclPermissionType.valueOf(f[6])));
    }

    static String text(AclBinding acl) {
        ResourcePattern resource = acl.pattern();
        AccessControlEntry entry = acl.entry();
        return String.join(",",
            resource.resourceType().name(), resource.name(), resource.patternType().name(),
            entry.principal(), entry.host(), entry.operation().name(),
            entry.permissionType().name());
    }
}
