"""Any server that speaks the chat completions protocol which OpenAI's API made common, as one whole binding."""
