/** The size limit of a request body. Policies that would need larger requests are rejected. */
export const MAX_BODY_BYTES = 131_072
