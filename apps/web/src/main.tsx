import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App, preloadPage } from './App.tsx'
import { loadConfig } from './config.ts'
import { ConfigErrorPage } from './shell/ConfigErrorPage.tsx'
import './styles/app.css'

const container = document.getElementById('root')
if (container) await start(container)

async function start(element: HTMLElement) {
  preloadPage(window.location.pathname)
  const root = createRoot(element)
  try {
    const config = await loadConfig(window.fetch.bind(window))
    root.render(
      <StrictMode>
        <App config={config} />
      </StrictMode>,
    )
  } catch (error) {
    root.render(<ConfigErrorPage error={error} />)
  }
}
