import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { siweServer } from './siweServer.ts'

export default defineConfig({ plugins: [react(), siweServer()] })
