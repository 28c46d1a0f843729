// Logs in with franz-go and asks for all ACLs: `login OAUTHBEARER ADDRESS TOKEN`, or
// `login GSSAPI ADDRESS KRB5.CONF KEYTAB PRINCIPAL REALM`. It prints {"error": null}, or what
// franz-go says.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
)

func main() {
	var said any
	if err := logIn(os.Args[1:]); err != nil {
		said = err.Error()
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{"error": said})
}

func logIn(arguments []string) error {
	mechanism, err := mechanismOf(arguments[0], arguments[2:])
	if err != nil {
		return err
	}
	connections, err := kgo.NewClient(kgo.SeedBrokers(arguments[1]), kgo.SASL(mechanism))
	if err != nil {
		return err
	}
	defer connections.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	anything := kadm.NewACLs().AnyResource().ResourcePatternType(kadm.ACLPatternAny).
		Operations().Allow().AllowHosts().Deny().DenyHosts()
	described, err := kadm.NewClient(connections).DescribeACLs(ctx, anything)
	if err != nil {
		return err
	}
	for _, one := range described {
		if one.Err != nil {
			return one.Err
		}
	}
	return nil
}

func mechanismOf(name string, arguments []string) (sasl.Mechanism, error) {
	switch name {
	case "OAUTHBEARER":
		return oauth.Auth{Token: arguments[0]}.AsMechanism(), nil
	case "GSSAPI":
		return kerberosOf(arguments[0], arguments[1], arguments[2], arguments[3])
	}
	return nil, fmt.Errorf("unknown mechanism %s", name)
}

func kerberosOf(krb5Conf, keytabFile, principal, realm string) (sasl.Mechanism, error) {
	settings, err := config.Load(krb5Conf)
	if err != nil {
		return nil, err
	}
	keys, err := keytab.Load(keytabFile)
	if err != nil {
		return nil, err
	}
	user := client.NewWithKeytab(principal, realm, keys, settings, client.DisablePAFXFAST(true))
	return kerberos.Auth{Client: user, Service: "kafka"}.AsMechanismWithClose(), nil
}
