"""What programs and the machine say of themselves: texts in, numbers out."""
