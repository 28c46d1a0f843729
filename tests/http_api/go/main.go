// What Confluent's SDK for Go makes of the HTTP API: it goes through one story, and prints each step
// as a line of JSON. Its arguments are the URL, a user with a password, and a cluster.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/antihax/optional"
	mds "github.com/confluentinc/mds-sdk-go-public/mdsv1"
)

type step struct {
	Step   string `json:"step"`
	Status int    `json:"status"`
	Body   string `json:"body,omitempty"`
	Value  any    `json:"value,omitempty"`
}

func tell(name string, response *http.Response, value any, err error) {
	told := step{Step: name, Value: value}
	if response != nil {
		told.Status = response.StatusCode
	}
	if err != nil {
		told.Body = err.Error()
		if failure, ok := err.(mds.GenericOpenAPIError); ok {
			told.Body = string(failure.Body())
		}
	}
	line, err := json.Marshal(told)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func client(url string) *mds.APIClient {
	settings := mds.NewConfiguration()
	settings.BasePath = url
	if authority := os.Getenv("AUTHORITY"); authority != "" {
		pem, err := os.ReadFile(authority)
		if err != nil {
			panic(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
		settings.HTTPClient = &http.Client{Transport: transport}
	}
	return mds.NewAPIClient(settings)
}

func binding(operation mds.AclOperation) mds.AclBinding {
	return mds.AclBinding{
		Pattern: mds.KafkaResourcePattern{
			ResourceType: mds.ACLRESOURCETYPE_TOPIC, Name: "orders", PatternType: mds.PATTERNTYPE_LITERAL,
		},
		Entry: mds.AccessControlEntry{
			Principal: "User:alice", Host: "*", Operation: operation,
			PermissionType: mds.ACLPERMISSIONTYPE_ALLOW,
		},
	}
}

func main() {
	url, user, password, cluster := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	api := client(url)
	basic := context.WithValue(context.Background(), mds.ContextBasicAuth,
		mds.BasicAuth{UserName: user, Password: password})
	features, response, err := api.MetadataServiceOperationsApi.Features(context.Background())
	tell("features", response, features.Features, err)
	wrong := context.WithValue(context.Background(), mds.ContextBasicAuth,
		mds.BasicAuth{UserName: user, Password: "wrong"})
	_, response, err = api.TokensAndAuthenticationApi.GetToken(wrong)
	tell("wrong password", response, nil, err)
	token, response, err := api.TokensAndAuthenticationApi.GetToken(basic)
	tell("token", response, token.TokenType, err)
	ctx := context.WithValue(context.Background(), mds.ContextAccessToken, token.AuthToken)
	id, response, err := api.MetadataServiceOperationsApi.MetadataClusterId(ctx)
	tell("metadataClusterId", response, id, err)
	own, response, err := api.KafkaACLManagementApi.SearchAclBinding(ctx, everything(id))
	tell("search of metadataClusterId", response, own, err)
	nodes, response, err := api.MetadataServiceOperationsApi.Activenodes(ctx, "http")
	tell("activenodes", response, nodes, err)
	acls(ctx, api, cluster)
	registry(ctx, api, cluster)
	roles, response, err := api.RBACRoleDefinitionsApi.Rolenames(ctx)
	tell("roleNames", response, roles, err)
}

func everything(cluster string) mds.AclFilterRequest {
	scope := mds.KafkaScope{Clusters: mds.KafkaScopeClusters{KafkaCluster: cluster}}
	return mds.AclFilterRequest{Scope: scope, AclBindingFilter: mds.AclBindingFilter{
		PatternFilter: mds.KafkaResourcePatternFilter{
			ResourceType: mds.ACLRESOURCETYPE_ANY, PatternType: mds.PATTERNTYPE_ANY},
		EntryFilter: mds.AccessControlEntryFilter{
			Operation: mds.ACLOPERATION_ANY, PermissionType: mds.ACLPERMISSIONTYPE_ANY},
	}}
}

func acls(ctx context.Context, api *mds.APIClient, cluster string) {
	scope := mds.KafkaScope{Clusters: mds.KafkaScopeClusters{KafkaCluster: cluster}}
	management := api.KafkaACLManagementApi
	for _, operation := range []mds.AclOperation{mds.ACLOPERATION_READ, mds.ACLOPERATION_ANY} {
		request := mds.CreateAclRequest{Scope: scope, AclBinding: binding(operation)}
		response, err := management.AddAclBinding(ctx, request)
		tell("add "+string(operation), response, nil, err)
	}
	asked := mds.AuthorizeRequest{UserPrincipal: "User:alice", Actions: []mds.Action{
		{Scope: mds.Scope{Clusters: mds.ScopeClusters{KafkaCluster: cluster}},
			Operation: "Read", ResourceType: "Topic", ResourceName: "orders"},
		{Scope: mds.Scope{Clusters: mds.ScopeClusters{KafkaCluster: cluster}},
			Operation: "Write", ResourceType: "Topic", ResourceName: "orders"},
	}}
	decided, response, err := api.AuthorizationApi.Authorize(ctx, asked)
	tell("authorize", response, decided, err)
	all := everything(cluster)
	found, response, err := management.SearchAclBinding(ctx, all)
	tell("search", response, found, err)
	removed, response, err := management.RemoveAclBindings(ctx, all)
	tell("remove", response, removed, err)
	none, response, err := management.SearchAclBinding(ctx, all)
	tell("search again", response, none, err)
	elsewhere := all
	elsewhere.Scope.Clusters.KafkaCluster = "nowhere"
	_, response, err = management.SearchAclBinding(ctx, elsewhere)
	tell("search elsewhere", response, nil, err)
}

func registry(ctx context.Context, api *mds.APIClient, cluster string) {
	clusters := api.ClusterRegistryApi
	given := []mds.ClusterInfo{{
		ClusterName: "prod",
		Scope:       mds.Scope{Clusters: mds.ScopeClusters{KafkaCluster: cluster}},
		Hosts:       []mds.HostInfo{{Host: "127.0.0.1", Port: 9092}},
		Protocol:    mds.PROTOCOL_SASL_PLAINTEXT,
	}}
	response, err := clusters.UpdateClusters(ctx, given)
	tell("register", response, nil, err)
	options := mds.ClusterRegistryListOpts{ClusterType: optional.NewString("kafka-cluster")}
	found, response, err := clusters.ClusterRegistryList(ctx, &options)
	tell("registered", response, found, err)
	one, response, err := clusters.GetNamedCluster(ctx, "prod")
	tell("registered as prod", response, one.ClusterName, err)
	response, err = clusters.DeleteNamedCluster(ctx, "prod")
	tell("unregister", response, nil, err)
	response, err = clusters.DeleteNamedCluster(ctx, "prod")
	tell("unregister again", response, nil, err)
}
