package kafkasink

import (
	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// scramClient implements [sarama.SCRAMClient] for one exchange.
type scramClient struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func newScram(hash scram.HashGeneratorFcn) func() sarama.SCRAMClient {
	return func() sarama.SCRAMClient { return &scramClient{hash: hash} }
}

// Begin implements [sarama.SCRAMClient].
func (c *scramClient) Begin(user, password, authzID string) error {
	client, err := c.hash.NewClient(user, password, authzID)
	if err != nil {
		return err
	}
	c.ClientConversation = client.NewConversation()
	return nil
}
