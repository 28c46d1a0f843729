import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.Resource;
import org.apache.kafka.common.resource.ResourceFilter;
import org.apache.kafka.common.resource.ResourceType;

/**
 * ACLs to and from their seven fields, for Kafka 0.11 to 1.1: these know no pattern types, so that
 * field is ignored when read and printed as LITERAL.
 */
final class Bindings {
    private Bindings() {
    }

    static AclBinding binding(String[] f) {
        return new AclBinding(
            new Resource(ResourceType.valueOf(f[0]), f[1]),
            new AccessControlEntry(
                f[3], f[4], AclOperation.valueOf(f[5]), AclPermissionType.valueOf(f[6])));
    }

    static AclBindingFilter filter(String[] f) {
        return new AclBindingFilter(
            new ResourceFilter(ResourceType.valueOf(f[0]), f[1]),
            new AccessControlEntryFilter(
                f[3], f[4], AclOperation.valueOf(f[5]), AclPermissionType.valueOf(f[6])));
    }

    static String text(AclBinding acl) {
        Resource resource = acl.resource();
        AccessControlEntry entry = acl.entry();
        return String.join(",",
            resource.resourceType().name(), resource.name(), "LITERAL",
            entry.principal(), entry.host(), entry.operation().name(),
            entry.permissionType().name());
    }
}
