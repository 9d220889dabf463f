terraform apply -invoke=action.agent_send_message.shorter
