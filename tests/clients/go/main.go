// The story driver of franz-go's admin client kadm; tests/clients/drivers.py describes what it
// reads and prints.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

var admin *kadm.Client
var secure *tls.Config

func main() {
	steps := bufio.NewScanner(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for steps.Scan() {
		words := strings.Split(steps.Text(), " ")
		result, err := answer(words[0], words[1:])
		if err != nil {
			answers.Encode(map[string]any{"error": nameOf(err)})
		} else {
			answers.Encode(map[string]any{"result": result})
		}
	}
}

func answer(verb string, words []string) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	switch verb {
	case "connect":
		return nil, connect(words[0], mechanism(words[1], words[2], words[3:]))
	case "tls":
		return nil, useTLS(words)
	case "create":
		return create(ctx, words)
	case "list":
		return list(ctx, words[0])
	case "delete":
		return deleteAll(ctx, words)
	case "disconnect":
		disconnect()
		secure = nil
		return nil, nil
	}
	return nil, fmt.Errorf("unknown verb %s", verb)
}

func mechanism(user, password string, options []string) sasl.Mechanism {
	auth := scram.Auth{User: user, Pass: password, IsToken: len(options) > 1}
	switch {
	case user == "-":
		return nil
	case len(options) == 0:
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	case options[0] == "SCRAM-SHA-256":
		return auth.AsSha256Mechanism()
	default:
		return auth.AsSha512Mechanism()
	}
}

func connect(bootstrap string, login sasl.Mechanism) error {
	disconnect()
	options := []kgo.Opt{kgo.SeedBrokers(bootstrap)}
	if login != nil {
		options = append(options, kgo.SASL(login))
	}
	if secure != nil {
		options = append(options, kgo.DialTLSConfig(secure))
	}
	client, err := kgo.NewClient(options...)
	if err == nil {
		admin = kadm.NewClient(client)
	}
	return err
}

func useTLS(files []string) error {
	trusted, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	secure = &tls.Config{RootCAs: x509.NewCertPool()}
	secure.RootCAs.AppendCertsFromPEM(trusted)
	if len(files) > 1 {
		own, err := tls.LoadX509KeyPair(files[1], files[1])
		if err != nil {
			return err
		}
		secure.Certificates = []tls.Certificate{own}
	}
	return nil
}

func disconnect() {
	if admin != nil {
		admin.Close()
	}
	admin = nil
}

func create(ctx context.Context, acls []string) ([]any, error) {
	results := []any{}
	for _, acl := range acls {
		builder, err := builderOf(acl)
		if err != nil {
			return nil, err
		}
		created, err := admin.CreateACLs(ctx, builder)
		if err != nil {
			return nil, err
		}
		for _, one := range created {
			results = append(results, nameOf(one.Err))
		}
	}
	return results, nil
}

func list(ctx context.Context, filter string) ([]string, error) {
	builder, err := builderOf(filter)
	if err != nil {
		return nil, err
	}
	described, err := admin.DescribeACLs(ctx, builder)
	if err != nil {
		return nil, err
	}
	found := []string{}
	for _, one := range described {
		if one.Err != nil {
			return nil, one.Err
		}
		for _, a := range one.Described {
			found = append(found, text(a))
		}
	}
	return found, nil
}

func deleteAll(ctx context.Context, filters []string) ([]any, error) {
	results := []any{}
	for _, filter := range filters {
		builder, err := builderOf(filter)
		if err != nil {
			return nil, err
		}
		deleted, err := admin.DeleteACLs(ctx, builder)
		if err != nil {
			return nil, err
		}
		results = append(results, deletedBy(deleted))
	}
	return results, nil
}

func deletedBy(results kadm.DeleteACLsResults) any {
	found := []any{}
	for _, one := range results {
		if one.Err != nil {
			return nameOf(one.Err)
		}
		for _, a := range one.Deleted {
			if a.Err != nil {
				found = append(found, nameOf(a.Err))
				continue
			}
			found = append(found, text(kadm.DescribedACL{
				Principal: a.Principal, Host: a.Host, Type: a.Type, Name: a.Name,
				Pattern: a.Pattern, Operation: a.Operation, Permission: a.Permission,
			}))
		}
	}
	return found
}

// builderOf makes the builder of one ACL or filter. A builder has no permission ANY: allowing and
// denying are both asked for, in two filters.
func builderOf(word string) (*kadm.ACLBuilder, error) {
	f := strings.Split(word, ",")
	pattern, err := kmsg.ParseACLResourcePatternType(f[2])
	if err != nil {
		return nil, err
	}
	operation, err := kmsg.ParseACLOperation(f[5])
	if err != nil {
		return nil, err
	}
	builder := kadm.NewACLs().ResourcePatternType(pattern).Operations(operation)
	if err := addResource(builder, f[0], given(f[1])); err != nil {
		return nil, err
	}
	if f[6] != "DENY" {
		builder.Allow(given(f[3])...).AllowHosts(given(f[4])...)
	}
	if f[6] != "ALLOW" {
		builder.Deny(given(f[3])...).DenyHosts(given(f[4])...)
	}
	return builder, nil
}

func addResource(builder *kadm.ACLBuilder, resourceType string, names []string) error {
	switch resourceType {
	case "ANY":
		builder.AnyResource(names...)
	case "TOPIC":
		builder.Topics(names...)
	case "GROUP":
		builder.Groups(names...)
	case "CLUSTER":
		builder.Clusters()
	case "TRANSACTIONAL_ID":
		builder.TransactionalIDs(names...)
	default:
		return fmt.Errorf("unknown resource type %s", resourceType)
	}
	return nil
}

// given is no value for an empty field: that is how kadm's builder spells null.
func given(field string) []string {
	if field == "" {
		return nil
	}
	return []string{field}
}

func text(a kadm.DescribedACL) string {
	return strings.Join([]string{
		a.Type.String(), a.Name, a.Pattern.String(),
		a.Principal, a.Host, a.Operation.String(), a.Permission.String(),
	}, ",")
}

// nameOf is Kafka's name of an error, nil for none.
func nameOf(err error) any {
	if err == nil {
		return nil
	}
	var answered *kerr.Error
	if errors.As(err, &answered) {
		return answered.Message
	}
	return err.Error()
}
