// Serves the fake broker of franz-go on one port of 127.0.0.1, with ACLs and SASL (PLAIN): the
// super user admin and the user alice, whose passwords are arguments.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port := flag.Int("port", 0, "the port to listen on")
	topic := flag.String("topic", "", "a topic that exists from the start")
	admin := flag.String("admin", "", "the password of admin, a super user")
	alice := flag.String("alice", "", "the password of alice, who has no rights at the start")
	flag.Parse()

	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.Ports(*port),
		kfake.EnableSASL(),
		kfake.EnableACLs(),
		kfake.Superuser("PLAIN", "admin", *admin),
		kfake.User("PLAIN", "alice", *alice),
		kfake.SeedTopics(3, *topic),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	fmt.Println("serving")

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
}
