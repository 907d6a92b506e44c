export { type ServiceConnectorParameters, serviceConnector } from './serviceConnector.ts'
