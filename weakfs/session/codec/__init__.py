"""The codec of session files: values of registered types to JSON and back."""
